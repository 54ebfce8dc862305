import Config

config :sum, SumWeb.Endpoint,
  adapter: Phoenix.Endpoint.Cowboy2Adapter,
  render_errors: [formats: [json: SumWeb.ErrorJSON], layout: false]

config :phoenix, :json_library, Jason

import Config

config :items,
  ecto_repos: [Items.Repo],
  generators: [timestamp_type: :utc_datetime]

config :items, ItemsWeb.Endpoint,
  adapter: Phoenix.Endpoint.Cowboy2Adapter,
  render_errors: [formats: [json: ItemsWeb.ErrorJSON], layout: false]

config :phoenix, :json_library, Jason

# one line a request would be part of what is measured
config :logger, level: :warning

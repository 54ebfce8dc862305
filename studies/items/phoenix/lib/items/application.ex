defmodule Items.Application do
  @moduledoc "The repository, the API's endpoint, and the metrics on a port of their own."

  use Application

  @impl true
  def start(_type, _args) do
    Items.Metrics.attach()

    children = [
      Items.Repo,
      {Plug.Cowboy,
       scheme: :http,
       plug: Items.Metrics,
       options: [
         ip: {127, 0, 0, 1},
         port: Application.fetch_env!(:items, :metrics_port),
         stream_handlers: [:cowboy_stream_h]
       ]},
      ItemsWeb.Endpoint
    ]

    Supervisor.start_link(children, strategy: :one_for_one, name: Items.Supervisor)
  end

  @impl true
  def config_change(changed, _new, removed) do
    ItemsWeb.Endpoint.config_change(changed, removed)
    :ok
  end
end

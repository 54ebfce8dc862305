defmodule Sum.Application do
  @moduledoc "The API's endpoint, and the metrics on a port of their own."

  use Application

  @impl true
  def start(_type, _args) do
    Sum.Metrics.attach()

    children = [
      {Plug.Cowboy,
       scheme: :http,
       plug: Sum.Metrics,
       options: [
         ip: {127, 0, 0, 1},
         port: Application.fetch_env!(:sum, :metrics_port),
         stream_handlers: [:cowboy_stream_h]
       ]},
      SumWeb.Endpoint
    ]

    Supervisor.start_link(children, strategy: :one_for_one)
  end
end

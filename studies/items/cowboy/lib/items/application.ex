defmodule Items.Application do
  @moduledoc "Two listeners: the API on PORT, its metrics on METRICS_PORT, both on loopback."

  use Application

  @impl true
  def start(_type, _args) do
    Items.Metrics.create()

    children = [
      Items.Store.pool(),
      listener(:api, port("PORT"), Items.Api.routes(), [Items.Measured, :cowboy_router, :cowboy_handler]),
      listener(:metrics, port("METRICS_PORT"), Items.Metrics.routes(), [:cowboy_router, :cowboy_handler])
    ]

    Supervisor.start_link(children, strategy: :one_for_one)
  end

  defp port(variable), do: variable |> System.fetch_env!() |> String.to_integer()

  defp listener(name, port, routes, middlewares) do
    transport = %{
      socket_opts: [ip: {127, 0, 0, 1}, port: port, backlog: 4096],
      max_connections: :infinity,
      num_acceptors: 16
    }

    protocol = %{
      env: %{dispatch: :cowboy_router.compile([{:_, routes}])},
      middlewares: middlewares,
      max_keepalive: 1_000_000_000,
      idle_timeout: 300_000
    }

    :ranch.child_spec(name, :ranch_tcp, transport, :cowboy_clear, protocol)
  end
end

defmodule Sum.Application do
  @moduledoc "Two listeners: the API on PORT, its metrics on METRICS_PORT, both on loopback."

  use Application

  @impl true
  def start(_type, _args) do
    Sum.Metrics.create()
    kept = "REQUESTS_PER_CONNECTION" |> System.fetch_env!() |> String.to_integer()

    children = [
      listener(:api, port("PORT"), Sum.Api.routes(), kept),
      listener(:metrics, port("METRICS_PORT"), Sum.Metrics.routes(), 1_000_000_000)
    ]

    Supervisor.start_link(children, strategy: :one_for_one)
  end

  defp port(variable), do: variable |> System.fetch_env!() |> String.to_integer()

  defp listener(name, port, routes, kept) do
    transport = %{
      socket_opts: [ip: {127, 0, 0, 1}, port: port, backlog: 4096],
      max_connections: :infinity,
      num_acceptors: 16
    }

    protocol = %{
      env: %{dispatch: :cowboy_router.compile([{:_, routes}])},
      max_keepalive: kept,
      idle_timeout: 300_000
    }

    :ranch.child_spec(name, :ranch_tcp, transport, :cowboy_clear, protocol)
  end
end

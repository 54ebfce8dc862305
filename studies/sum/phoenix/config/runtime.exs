import Config

# PORT, METRICS_PORT, LOG and REQUESTS_PER_CONNECTION, as the study sets them; both listeners on loopback.
config :sum, SumWeb.Endpoint,
  url: [host: "127.0.0.1"],
  http: [
    ip: {127, 0, 0, 1},
    port: String.to_integer(System.fetch_env!("PORT")),
    protocol_options: [
      max_keepalive: String.to_integer(System.fetch_env!("REQUESTS_PER_CONNECTION")),
      idle_timeout: 300_000
    ]
  ],
  # nothing is signed or encrypted by this service: Phoenix only wants one to be there
  secret_key_base: String.duplicate("sums", 16)

config :sum, :metrics_port, String.to_integer(System.fetch_env!("METRICS_PORT"))

config :logger, level: String.to_existing_atom(System.fetch_env!("LOG"))

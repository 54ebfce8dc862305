import Config

# PORT, METRICS_PORT, DATABASE_URL and POOL_SIZE, as the study sets them; both listeners on loopback.
config :items, Items.Repo,
  url: System.fetch_env!("DATABASE_URL"),
  pool_size: String.to_integer(System.get_env("POOL_SIZE", "10"))

config :items, ItemsWeb.Endpoint,
  url: [host: "127.0.0.1"],
  http: [
    ip: {127, 0, 0, 1},
    port: String.to_integer(System.fetch_env!("PORT")),
    # as the other build: no connection ends during a run
    protocol_options: [max_keepalive: 1_000_000_000, idle_timeout: 300_000]
  ],
  # nothing is signed or encrypted by this service: Phoenix only wants one to be there
  secret_key_base: String.duplicate("items", 16)

config :items, :metrics_port, String.to_integer(System.fetch_env!("METRICS_PORT"))

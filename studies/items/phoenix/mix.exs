defmodule Items.MixProject do
  use Mix.Project

  # Every dependency comes from the Hex registry. The versions are the last ones that resolve on Elixir 1.14;
  # those that Phoenix brings along (phoenix_pubsub, phoenix_template, plug_crypto, ...) are left to the resolver.
  def project do
    [
      app: :items,
      version: "1.0.0",
      elixir: "~> 1.14",
      elixirc_paths: ["lib"],
      start_permanent: Mix.env() == :prod,
      aliases: [],
      deps: deps()
    ]
  end

  def application do
    [mod: {Items.Application, []}, extra_applications: [:logger, :runtime_tools]]
  end

  defp deps do
    [
      {:phoenix, "== 1.7.23"},
      {:phoenix_ecto, "== 4.6.6"},
      {:ecto, "== 3.12.5"},
      {:ecto_sql, "== 3.12.1"},
      {:postgrex, "== 0.20.0"},
      {:db_connection, "== 2.7.0"},
      {:plug, "== 1.18.2"},
      {:plug_cowboy, "== 2.7.5"},
      {:cowboy, "== 2.14.2"},
      {:cowlib, "== 2.16.0"},
      {:ranch, "== 1.8.1"},
      {:telemetry, "== 1.3.0"},
      {:jason, "== 1.4.4"},
      {:decimal, "== 2.3.0"}
    ]
  end
end

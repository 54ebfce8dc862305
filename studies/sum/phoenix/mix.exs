defmodule Sum.MixProject do
  use Mix.Project

  # Every dependency comes from the Hex registry. The versions are of `studies/items/phoenix`; those that Phoenix
  # brings along (phoenix_pubsub, phoenix_template, plug_crypto, ...) are left to the resolver.
  def project do
    [
      app: :sum,
      version: "1.0.0",
      elixir: "~> 1.14",
      start_permanent: Mix.env() == :prod,
      deps: deps()
    ]
  end

  def application, do: [mod: {Sum.Application, []}, extra_applications: [:logger]]

  defp deps do
    [
      {:phoenix, "== 1.7.23"},
      {:plug, "== 1.18.2"},
      {:plug_cowboy, "== 2.7.5"},
      {:cowboy, "== 2.14.2"},
      {:cowlib, "== 2.16.0"},
      {:ranch, "== 1.8.1"},
      {:telemetry, "== 1.3.0"},
      {:jason, "== 1.4.4"}
    ]
  end
end

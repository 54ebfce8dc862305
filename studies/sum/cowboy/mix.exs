defmodule Sum.MixProject do
  use Mix.Project

  # No dependencies: cowboy, ranch and jiffy come from the distribution's packages (boot.exs puts them on the
  # code path), so nothing here needs the Hex registry.
  def project do
    [
      app: :sum,
      version: "1.0.0",
      elixir: "~> 1.14",
      deps: [],
      elixirc_options: [no_warn_undefined: :all]
    ]
  end

  def application, do: [mod: {Sum.Application, []}, extra_applications: [:logger]]
end

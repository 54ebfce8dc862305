defmodule Odd.MixProject do
  use Mix.Project

  def project, do: [app: :odd, version: "1.0.0", elixir: "~> 1.14", deps: []]
  def application, do: []
end

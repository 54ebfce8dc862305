defmodule TollTags.Config do
  @moduledoc "Settings of the lookup desk, by deployment."

  @trial %{permits_per_s: 55, registry_ms: 35}
  @contract %{permits_per_s: 4000, registry_ms: 35}
  @contract_far %{permits_per_s: 4000, registry_ms: 105}

  def port, do: System.get_env("PORT", "8080") |> String.to_integer()

  def load do
    case System.get_env("VARIANT") do
      "mended" -> @contract
      "healthy" -> @contract_far
      _ -> @trial
    end
  end
end

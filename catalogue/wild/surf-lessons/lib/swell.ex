defmodule Surf.Swell do
  @moduledoc "Height of the waves along the bay, from the spectra of its buoys."
  @beaches %{"north" => 0.9, "dunes" => 0.6, "harbour" => 0.2}
  @samples 50

  def beaches, do: Map.keys(@beaches)

  def forecast do
    Surf.Metrics.timed(:swell_forecast_duration_seconds, fn ->
      Map.new(@beaches, fn {beach, exposure} -> {beach, Enum.map(1..24, &height(&1, exposure))} end)
    end)
  end

  defp height(slot, exposure) do
    crests = for sample <- 1..@samples, do: crest(slot * 1800 + sample, exposure)
    Float.round(4 * :math.sqrt(Enum.sum(Enum.map(crests, &(&1 * &1))) / @samples), 2)
  end

  defp crest(second, exposure) do
    Enum.reduce(1..40, 0.0, fn band, sum ->
      amplitude = 0.22 * :math.exp(-((band - 11) / 6) ** 2)
      sum + exposure * amplitude * :math.cos(6.2832 * (0.04 + band * 0.006) * second + band * 2.399)
    end)
  end
end

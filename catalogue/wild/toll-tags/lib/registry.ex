defmodule TollTags.Registry do
  @moduledoc "Client of the national tag registry."

  alias TollTags.Pacer

  def account(tag, settings) do
    with {:ok, country, serial} <- parse(tag) do
      waited = Pacer.take_turn()
      if waited > 5_000, do: IO.puts("registry turn for #{tag} came after #{waited} ms")
      {:ok, ask(country, serial, settings)}
    end
  end

  defp parse(tag) do
    case String.split(tag, "-") do
      [country, batch, number] when byte_size(country) == 2 ->
        with {batch, ""} <- Integer.parse(batch), {number, ""} <- Integer.parse(number) do
          {:ok, country, batch * 100_000 + number}
        else
          _ -> {:error, :bad_tag}
        end

      _ ->
        {:error, :bad_tag}
    end
  end

  # The registry is reached through the ministry's line.
  defp ask(country, serial, settings) do
    Process.sleep(settings.registry_ms)
    digest = :crypto.hash(:sha256, "#{country}#{serial}") |> Base.encode16(case: :lower)

    %{
      account: "TA-" <> binary_part(digest, 0, 10),
      country: country,
      class: rem(serial, 4) + 1,
      prepaid: rem(serial, 3) == 0
    }
  end
end

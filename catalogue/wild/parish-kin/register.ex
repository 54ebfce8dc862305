defmodule Parish.Register do
  @moduledoc "Surnames of the parish registers, with the years in which each was seen."

  @first ~w(Ash Black Cald Dun Elder Fair Grim Hather Ing Kel Lang Mal Nor Oak Pem Quar Rad Sed Thorn Wether)
  @middle ~w(el in er ing ar ow es)
  @last ~w(by don field gate ham hurst ley ridge ton wick worth)

  defstruct [:entries, :index]

  def load do
    entries =
      for {a, i} <- Enum.with_index(@first), {b, j} <- Enum.with_index(@middle), {c, k} <- Enum.with_index(@last) do
        name = a <> b <> c
        year = 1580 + rem(i * 37 + j * 11 + k * 5, 240)
        %{name: name, letters: letters(name), years: {year, year + 40 + rem(i + j + k, 90)}}
      end

    index =
      for entry <- entries, pair <- pairs(entry.letters), reduce: %{} do
        found -> Map.update(found, pair, [entry], &[entry | &1])
      end

    :persistent_term.put(__MODULE__, %__MODULE__{entries: entries, index: index})
  end

  @doc "Entries that may be meant by the letters of a name."
  def candidates(letters, variant) do
    register = :persistent_term.get(__MODULE__)

    case variant do
      "flawed" ->
        register.entries

      _ ->
        rare = letters |> pairs() |> Enum.map(&Map.get(register.index, &1, [])) |> Enum.reject(&(&1 == []))

        rare
        |> Enum.sort_by(&length/1)
        |> Enum.take(2)
        |> Enum.concat()
        |> Enum.uniq_by(& &1.name)
    end
  end

  def letters(name), do: name |> String.downcase() |> String.to_charlist()

  defp pairs(letters), do: letters |> Enum.zip(tl(letters)) |> Enum.uniq()
end

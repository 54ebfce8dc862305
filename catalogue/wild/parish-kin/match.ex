defmodule Parish.Match do
  @moduledoc "Spellings of a surname that are close to the one asked for."

  alias Parish.Register

  def closest(name, limit, variant) do
    letters = Register.letters(name)

    letters
    |> Register.candidates(variant)
    |> Enum.map(&{distance(letters, &1.letters), &1})
    |> Enum.filter(fn {distance, _} -> distance <= 4 end)
    |> Enum.sort_by(fn {distance, entry} -> {distance, entry.name} end)
    |> Enum.take(limit)
  end

  @doc "Levenshtein's distance of two lists of letters."
  def distance(a, b) do
    first = Enum.to_list(0..length(b))

    a
    |> Enum.reduce({first, 1}, fn letter, {above, row} -> {next_row(letter, b, above, [row]), row + 1} end)
    |> elem(0)
    |> List.last()
  end

  defp next_row(_, [], _, done), do: Enum.reverse(done)

  defp next_row(letter, [other | rest], [corner, up | above], [left | _] = done) do
    cost = if letter == other, do: corner, else: 1 + min(corner, min(up, left))
    next_row(letter, rest, [up | above], [cost | done])
  end
end

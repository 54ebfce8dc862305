defmodule TollTags.Json do
  @moduledoc "Just enough JSON for our answers."

  def encode(map) when is_map(map) do
    inner = Enum.map_join(map, ",", fn {key, value} -> encode(to_string(key)) <> ":" <> encode(value) end)
    "{" <> inner <> "}"
  end

  def encode(list) when is_list(list), do: "[" <> Enum.map_join(list, ",", &encode/1) <> "]"
  def encode(value) when is_boolean(value) or is_number(value), do: to_string(value)
  def encode(nil), do: "null"
  def encode(value) when is_atom(value), do: encode(Atom.to_string(value))

  def encode(value) when is_binary(value) do
    escaped = value |> String.replace("\\", "\\\\") |> String.replace("\"", "\\\"")
    "\"" <> escaped <> "\""
  end
end

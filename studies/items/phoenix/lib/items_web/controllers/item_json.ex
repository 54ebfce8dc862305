defmodule ItemsWeb.ItemJSON do
  alias Items.Catalog.Item

  @doc "A list of items."
  def index(%{items: items}), do: %{data: for(item <- items, do: data(item))}

  @doc "One item."
  def show(%{item: item}), do: %{data: data(item)}

  defp data(%Item{} = item), do: %{id: item.id, value: item.value}
end

defmodule Items.Catalog do
  @moduledoc "The items, as `mix phx.gen.json Catalog Item items value:boolean` makes their context."

  import Ecto.Query, warn: false
  alias Items.Catalog.Item
  alias Items.Repo

  def list_items, do: Repo.all(Item)

  @doc "Raises `Ecto.NoResultsError` if there is no such item."
  def get_item!(id), do: Repo.get!(Item, id)

  def create_item(attrs \\ %{}) do
    %Item{}
    |> Item.changeset(attrs)
    |> Repo.insert()
  end

  def update_item(%Item{} = item, attrs) do
    item
    |> Item.changeset(attrs)
    |> Repo.update()
  end

  @doc "Says `{:error, changeset}` for one that somebody else deleted meanwhile."
  def delete_item(%Item{} = item), do: Repo.delete(item, stale_error_field: :id)
end

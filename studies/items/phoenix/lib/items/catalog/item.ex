defmodule Items.Catalog.Item do
  use Ecto.Schema
  import Ecto.Changeset

  schema "items" do
    field :value, :boolean, default: false
  end

  @doc false
  def changeset(item, attrs) do
    item
    |> cast(attrs, [:value])
    |> validate_required([:value])
  end
end

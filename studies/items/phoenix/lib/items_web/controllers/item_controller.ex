defmodule ItemsWeb.ItemController do
  use ItemsWeb, :controller

  alias Items.Catalog
  alias Items.Catalog.Item

  action_fallback ItemsWeb.FallbackController

  def index(conn, _params) do
    items = Catalog.list_items()
    render(conn, :index, items: items)
  end

  def create(conn, %{"item" => item_params}) do
    with {:ok, %Item{} = item} <- Catalog.create_item(item_params) do
      conn
      |> put_status(:created)
      |> put_resp_header("location", ~p"/api/items/#{item}")
      |> render(:show, item: item)
    end
  end

  def show(conn, %{"id" => id}) do
    item = Catalog.get_item!(id)
    render(conn, :show, item: item)
  end

  def update(conn, %{"id" => id, "item" => item_params}) do
    item = Catalog.get_item!(id)

    with {:ok, %Item{} = item} <- Catalog.update_item(item, item_params) do
      render(conn, :show, item: item)
    end
  end

  def delete(conn, %{"id" => id}) do
    item = Catalog.get_item!(id)

    with {:ok, %Item{}} <- Catalog.delete_item(item) do
      send_resp(conn, :no_content, "")
    end
  end
end

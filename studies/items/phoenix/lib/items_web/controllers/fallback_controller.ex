defmodule ItemsWeb.FallbackController do
  @moduledoc "Turns what is no `Plug.Conn` into an answer: 422 for a changeset with errors."

  use ItemsWeb, :controller

  def call(conn, {:error, %Ecto.Changeset{errors: [{:id, {"is stale", _}} | _]}}) do
    conn
    |> put_status(:not_found)
    |> put_view(json: ItemsWeb.ErrorJSON)
    |> render(:"404")
  end

  def call(conn, {:error, %Ecto.Changeset{} = changeset}) do
    conn
    |> put_status(:unprocessable_entity)
    |> put_view(json: ItemsWeb.ChangesetJSON)
    |> render(:error, changeset: changeset)
  end
end

defmodule SumWeb.SumController do
  @moduledoc "Answers as `../cowboy`: what is no JSON object is 400, what has no two numbers 422."

  use Phoenix.Controller, formats: [:json]

  import Plug.Conn

  def sum(conn, %{"a" => a, "b" => b}) when is_number(a) and is_number(b) do
    json(conn, %{result: a + b})
  rescue
    ArithmeticError -> refuse(conn, 422)
  end

  # an array, a number or a text, as Plug's parser hands it over
  def sum(conn, %{"_json" => _}), do: refuse(conn, 400)
  def sum(conn, _params), do: refuse(conn, 422)

  defp refuse(conn, status), do: conn |> put_status(status) |> json(SumWeb.ErrorJSON.render("#{status}.json", %{}))
end

defmodule ItemsWeb do
  @moduledoc "What controllers, JSON views and the router have in common: `use ItemsWeb, :controller`."

  def router do
    quote do
      use Phoenix.Router, helpers: false

      import Plug.Conn
      import Phoenix.Controller
    end
  end

  def controller do
    quote do
      use Phoenix.Controller, formats: [:json]

      import Plug.Conn

      unquote(verified_routes())
    end
  end

  def verified_routes do
    quote do
      use Phoenix.VerifiedRoutes, endpoint: ItemsWeb.Endpoint, router: ItemsWeb.Router, statics: []
    end
  end

  @doc "When used, dispatch to the appropriate function."
  defmacro __using__(which) when is_atom(which), do: apply(__MODULE__, which, [])
end

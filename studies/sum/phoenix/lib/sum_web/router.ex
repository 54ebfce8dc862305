defmodule SumWeb.Router do
  use Phoenix.Router, helpers: false

  pipeline :api do
    plug :accepts, ["json"]
  end

  scope "/api", SumWeb do
    pipe_through :api

    post "/sum", SumController, :sum
  end
end

defmodule ItemsWeb.Router do
  use ItemsWeb, :router

  pipeline :api do
    plug :accepts, ["json"]
  end

  scope "/api", ItemsWeb do
    pipe_through :api

    resources "/items", ItemController, except: [:new, :edit]
  end
end

defmodule Items.Repo do
  use Ecto.Repo, otp_app: :items, adapter: Ecto.Adapters.Postgres
end

defmodule Items.Repo.Migrations.CreateItems do
  use Ecto.Migration

  def change do
    create table(:items) do
      add :value, :boolean, default: false, null: false
    end
  end
end

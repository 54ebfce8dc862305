defmodule Items.Store do
  @moduledoc "The items in PostgreSQL: prepared statements over a pool of connections."

  @statements %{
    list: {'list', 'SELECT id, value FROM items'},
    get: {'get', 'SELECT id, value FROM items WHERE id = $1'},
    insert: {'insert', 'INSERT INTO items (value) VALUES ($1) RETURNING id, value'},
    update: {'update', 'UPDATE items SET value = $2 WHERE id = $1 RETURNING id, value'},
    delete: {'delete', 'DELETE FROM items WHERE id = $1'}
  }
  @table "CREATE TABLE IF NOT EXISTS items (id bigserial PRIMARY KEY, value boolean NOT NULL DEFAULT false)"
  @checkout_ms 15_000

  def pool do
    size = "POOL_SIZE" |> System.get_env("10") |> String.to_integer()
    :poolboy.child_spec(__MODULE__, name: {:local, __MODULE__}, worker_module: __MODULE__, size: size, max_overflow: 0)
  end

  @doc "A connection of the pool, its statements prepared."
  def start_link(_) do
    {:ok, connection} = connect()

    for {name, sql} <- Map.values(@statements) do
      {:ok, _, _, _} = :pgsql.prepare(connection, name, sql)
    end

    {:ok, connection}
  end

  def migrate do
    {:ok, connection} = connect()
    {:ok, _} = :pgsql.squery(connection, @table)
    :ok = :pgsql.terminate(connection)
  end

  def list, do: rows(run(:list, []))
  def get(id), do: one(run(:get, [id]))
  def insert(value), do: one(run(:insert, [value]))
  def update(id, value), do: one(run(:update, [id, value]))

  def delete(id) do
    {:DELETE, count} = run(:delete, [id])
    if count == 1, do: :ok, else: :none
  end

  defp run(statement, values) do
    {name, _} = Map.fetch!(@statements, statement)
    values = Enum.map(values, &to_charlist/1)

    :poolboy.transaction(
      __MODULE__,
      fn connection ->
        {:ok, result} = :pgsql.execute(connection, name, values)
        result
      end,
      @checkout_ms
    )
  end

  defp rows({_, rows}), do: Enum.map(rows, &item/1)

  defp one({_, [row]}), do: {:ok, item(row)}
  defp one({_, []}), do: :none

  defp item([{_, id}, {_, value}]), do: {[id: String.to_integer(id), value: value == "1"]}

  defp connect do
    uri = URI.parse(System.fetch_env!("DATABASE_URL"))
    [user | _] = String.split(uri.userinfo || "postgres", ":")

    :pgsql.connect(
      host: to_charlist(uri.host),
      port: uri.port,
      user: to_charlist(user),
      password: '',
      database: to_charlist(String.trim_leading(uri.path, "/")),
      as_binary: true
    )
  end
end

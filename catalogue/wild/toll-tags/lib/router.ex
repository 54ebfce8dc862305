defmodule TollTags.Router do
  @moduledoc "What each path answers."

  alias TollTags.{Pacer, Registry}

  def handle(:GET, path, settings) do
    uri = URI.parse(path)
    query = URI.decode_query(uri.query || "")

    case String.split(uri.path, "/", trim: true) do
      ["status"] -> {200, %{status: "ok"}}
      ["usage"] -> {200, %{registry_calls: GenServer.call(Pacer, :given)}}
      ["tags", tag, "account"] -> lookup(tag, query["gantry"], settings)
      _ -> {404, %{error: "not found"}}
    end
  end

  def handle(_method, _path, _settings), do: {405, %{error: "method not allowed"}}

  defp lookup(tag, gantry, settings) do
    case Registry.account(tag, settings) do
      {:ok, account} ->
        {200, Map.merge(account, %{tag: tag, gantry: gantry, toll_cents: toll(gantry, account.class)})}

      {:error, reason} ->
        {400, %{error: reason}}
    end
  end

  defp toll(nil, _class), do: nil
  defp toll(gantry, class), do: rem(:erlang.phash2(gantry), 300) + 60 * class
end

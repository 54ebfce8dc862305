defmodule Items.Api do
  @moduledoc """
  CRUD over items: `{"data": {"id": 1, "value": true}}`.

  Answers as a generated Phoenix API would: 201 with a Location, 204 on delete, 404 for an unknown id, 400 for a
  request that cannot be read, 422 for a value that cannot be one.
  """

  @json %{"content-type" => "application/json; charset=utf-8", "cache-control" => "max-age=0, private, must-revalidate"}
  @longest_body 1_000_000
  @largest_id 9_223_372_036_854_775_807

  def routes do
    [{"/api/items", __MODULE__, "/api/items"}, {"/api/items/:id", __MODULE__, "/api/items/:id"}, {"/[...]", __MODULE__, "none"}]
  end

  def init(request, route) do
    {status, headers, body, request} = safe_answer(request.method, route, request)
    done = :cowboy_req.reply(status, headers, body, request)
    Items.Metrics.count(request.method, route, status, request.began)
    {:ok, done, route}
  end

  # A failure is an answer too, and counted: 503 when no connection came free in time.
  defp safe_answer(method, route, request) do
    answer(method, route, request)
  catch
    :exit, {:timeout, _} -> error(503, "Service Unavailable", request)
    _, _ -> error(500, "Internal Server Error", request)
  end

  defp answer("GET", "/api/items", request), do: data(200, Items.Store.list(), request)

  defp answer("POST", "/api/items", request) do
    with_item(request, fn item, request ->
      with {:ok, value} <- value_of(item, false) do
        {:ok, made} = Items.Store.insert(value)
        {status, headers, body, request} = data(201, made, request)
        {[{:id, id} | _]} = made
        {status, Map.put(headers, "location", "/api/items/#{id}"), body, request}
      end
    end)
  end

  defp answer(method, "/api/items/:id", request) do
    case {method, id_of(request)} do
      {_, :error} -> error(400, "Bad Request", request)
      {"GET", id} -> found(Items.Store.get(id), request)
      {"DELETE", id} -> deleted(Items.Store.delete(id), request)
      {method, id} when method in ["PUT", "PATCH"] -> update(id, request)
      _ -> error(404, "Not Found", request)
    end
  end

  defp answer(_, _, request), do: error(404, "Not Found", request)

  defp update(id, request) do
    case Items.Store.get(id) do
      :none ->
        error(404, "Not Found", request)

      {:ok, {[_, {:value, before}]}} ->
        with_item(request, fn item, request ->
          with {:ok, value} <- value_of(item, before) do
            found(Items.Store.update(id, value), request)
          end
        end)
    end
  end

  # The item of a JSON body; what is no such body is 400, what is no value 422.
  defp with_item(request, then) do
    with {:ok, body, request} <- :cowboy_req.read_body(request, %{length: @longest_body}),
         {:ok, %{"item" => %{} = item}} <- decoded(body) do
      case then.(item, request) do
        {:invalid, why} -> json(422, %{errors: %{value: [why]}}, request)
        answer -> answer
      end
    else
      {:more, _, request} -> error(413, "Request Entity Too Large", request)
      _ -> error(400, "Bad Request", request)
    end
  end

  defp decoded(body) do
    {:ok, :jiffy.decode(body, [:return_maps, :use_nil])}
  catch
    _, _ -> :error
  end

  # As Ecto casts a boolean.
  defp value_of(item, default) do
    case Map.get(item, "value", default) do
      value when is_boolean(value) -> {:ok, value}
      text when text in ["true", "1"] -> {:ok, true}
      text when text in ["false", "0"] -> {:ok, false}
      none when none in [nil, ""] -> {:invalid, "can't be blank"}
      _ -> {:invalid, "is invalid"}
    end
  end

  defp id_of(request) do
    case Integer.parse(:cowboy_req.binding(:id, request)) do
      {id, ""} when abs(id) <= @largest_id -> id
      _ -> :error
    end
  end

  defp found({:ok, item}, request), do: data(200, item, request)
  defp found(:none, request), do: error(404, "Not Found", request)

  defp deleted(:ok, request), do: {204, %{}, "", request}
  defp deleted(:none, request), do: error(404, "Not Found", request)

  defp data(status, content, request), do: json(status, %{data: content}, request)
  defp error(status, words, request), do: json(status, %{errors: %{detail: words}}, request)
  defp json(status, content, request), do: {status, @json, :jiffy.encode(content), request}
end

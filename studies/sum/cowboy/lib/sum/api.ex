defmodule Sum.Api do
  @moduledoc """
  `POST /api/sum` with `{"a": 1, "b": 2}` answers `{"result": 3}`.

  What is no JSON object is 400, what has no two numbers 422, another path or method 404.
  """

  require Logger

  @json %{"content-type" => "application/json; charset=utf-8", "cache-control" => "max-age=0, private, must-revalidate"}
  @longest_body 1_000_000

  def routes, do: [{"/api/sum", __MODULE__, :sum}, {"/[...]", __MODULE__, :none}]

  def init(request, route) do
    began = System.monotonic_time()
    {status, content, request} = answer(request.method, route, request)
    done = :cowboy_req.reply(status, @json, :jiffy.encode(content), request)
    took_us = System.convert_time_unit(System.monotonic_time() - began, :native, :microsecond)
    Sum.Metrics.count(status, took_us)
    Logger.info(fn -> "#{request.method} #{request.path} #{status} in #{took_us} µs" end)
    {:ok, done, route}
  end

  defp answer("POST", :sum, request) do
    case :cowboy_req.read_body(request, %{length: @longest_body}) do
      {:ok, body, request} -> with_sum(decoded(body), request)
      {:more, _, request} -> {413, words("Request Entity Too Large"), request}
    end
  end

  defp answer(_, _, request), do: {404, words("Not Found"), request}

  defp with_sum({:ok, %{"a" => a, "b" => b}}, request) when is_number(a) and is_number(b) do
    {200, %{result: a + b}, request}
  rescue
    ArithmeticError -> {422, words("Unprocessable Entity"), request}
  end

  defp with_sum({:ok, %{}}, request), do: {422, words("Unprocessable Entity"), request}
  defp with_sum(_, request), do: {400, words("Bad Request"), request}

  defp decoded(body) do
    {:ok, :jiffy.decode(body, [:return_maps, :use_nil])}
  catch
    _, _ -> :error
  end

  defp words(text), do: %{errors: %{detail: text}}
end

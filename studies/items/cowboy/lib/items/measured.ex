defmodule Items.Measured do
  @moduledoc "Notes when a request began, so that its answer is counted with the time that it took."

  def execute(request, env), do: {:ok, Map.put(request, :began, System.monotonic_time()), env}
end

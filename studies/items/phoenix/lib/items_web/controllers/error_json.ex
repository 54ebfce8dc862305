defmodule ItemsWeb.ErrorJSON do
  @moduledoc "Invoked by the endpoint for exceptions: the words of the status."

  def render(template, _assigns) do
    %{errors: %{detail: Phoenix.Controller.status_message_from_template(template)}}
  end
end

# An id that no column of the database can hold is a fault of the request; Ecto only finds out when it encodes it.
defimpl Plug.Exception, for: DBConnection.EncodeError do
  def status(_exception), do: 400
  def actions(_exception), do: []
end

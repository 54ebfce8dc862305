defmodule SumWeb.ErrorJSON do
  @moduledoc "The words of the status, for refused requests and for exceptions."

  def render(template, _assigns) do
    %{errors: %{detail: Phoenix.Controller.status_message_from_template(template)}}
  end
end

defmodule ItemsWeb.ChangesetJSON do
  @doc "The errors of a changeset by field."
  def error(%{changeset: changeset}) do
    %{errors: Ecto.Changeset.traverse_errors(changeset, &translate_error/1)}
  end

  defp translate_error({message, options}) do
    Enum.reduce(options, message, fn {key, value}, text ->
      String.replace(text, "%{#{key}}", fn _ -> to_string(value) end)
    end)
  end
end

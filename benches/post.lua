-- A POST with a body of its own for each request, as the other generators send it.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  return wrk.format(nil, nil, nil, '{"a":' .. math.random(100) .. ',"b":' .. math.random(100) .. "}")
end

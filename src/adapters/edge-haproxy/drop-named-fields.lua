-- Removes the fields that a request's Connection field names (RFC 9110 section 7.6.1), which HAProxy itself passes on.
local kept = { ["close"] = true, ["connection"] = true, ["upgrade"] = true, ["host"] = true,
  ["content-length"] = true, ["transfer-encoding"] = true, ["te"] = true }

core.register_action("drop_named_fields", { "http-req" }, function(txn)
  local connection = txn.http:req_get_headers()["connection"] or {}
  for _, value in pairs(connection) do
    for name in value:lower():gmatch("[^,%s]+") do
      if not kept[name] then txn.http:req_del_header(name) end
    end
  end
end)

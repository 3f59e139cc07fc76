-- Ends a request to an application when its body passes the filter's argument in bytes. HAProxy's own rules see stated lengths only.
local LimitBody = { id = "limit-body", flags = filter.FLT_CFG_FL_HTX }
LimitBody.__index = LimitBody

function LimitBody:new()
  return setmetatable({ limit = self.limit, seen = 0 }, LimitBody)
end

function LimitBody:start_analyze(txn, channel)
  -- The fourth letter of a route to the control plane, which has limits of its own.
  local is_control = string.sub(txn:get_var("txn.route") or "", 4, 4) == "C"
  if not channel:is_resp() and not is_control then filter.register_data_filter(self, channel) end
end

function LimitBody:http_payload(txn, message)
  if message.channel:is_resp() then return end
  self.seen = self.seen + message:input()
  -- The end of a message counts as one byte.
  if self.seen > self.limit + 1 then
    txn:set_var("txn.refused", "body_too_large")
    error("A request's body passes the limit of " .. self.limit .. " bytes; its client gets 413.", 0)
  end
end

core.register_filter("limit-body", LimitBody, function(config, arguments)
  config.limit = tonumber(arguments[1])
  return config
end)

-- Health of core.orka.ai/RuntimePoolClass. Healthy: the controller renders pools from it.
-- Drifted passes by itself while a rollout of the controller and its class overtake each other, so it is no failure here.
local health = {}
local status = obj.status or {}
local observed = status.observedGeneration
if observed == nil or observed < (obj.metadata.generation or 0) then
  health.status = "Progressing"
  health.message = "the controller has not seen this generation yet"
  return health
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    elseif condition.reason == "Invalid" or condition.reason == "Ambiguous" then
      health.status = "Degraded"
    else
      health.status = "Progressing"
    end
    return health
  end
end
health.status = "Progressing"
health.message = "the controller has not said whether it can use the class"
return health

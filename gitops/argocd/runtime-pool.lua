-- Health of core.orka.ai/RuntimePool. Healthy: it does what is wanted of it, which for an idle pool is nothing.
local health = {}
local status = obj.status or {}
local wanted = obj.spec.desiredReplicas or 0
if obj.metadata.deletionTimestamp ~= nil then
  health.status = "Progressing"
  health.message = "being drained and deleted"
  return health
end
local observed = status.observedGeneration
if observed == nil or observed < (obj.metadata.generation or 0) then
  health.status = "Progressing"
  health.message = "the controller has not seen this generation yet"
  return health
end
health.message = status.message
if status.lifecycle == "Degraded" or status.lifecycle == "Ambiguous" then
  health.status = "Degraded"
elseif status.lifecycle == "Serving" and wanted > 0 then
  health.status = "Healthy"
elseif (status.lifecycle == "Stopped" or status.lifecycle == nil) and wanted == 0 then
  health.status = "Healthy"
else
  health.status = "Progressing"
end
return health

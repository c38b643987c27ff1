-- Health of core.orka.ai/Task. Healthy: it succeeded. A Task that waits for its schedule is Suspended.
local health = {}
local status = obj.status or {}
local phase = status.phase
health.message = status.message
if phase == "Succeeded" then
  health.status = "Healthy"
elseif phase == "Failed" or phase == "Cancelled" then
  health.status = "Degraded"
  health.message = status.message or phase
elseif phase == "Scheduled" then
  health.status = "Suspended"
else
  health.status = "Progressing"
  health.message = status.message or phase or "the controller has not seen the Task yet"
end
return health

import type { Descriptions } from './type.js';

const placement = 'Refused for agent Tasks: placement belongs to the class.';

/** Fields that several kinds have. */
export const sharedDescriptions: Descriptions = {
  conditions: 'Conditions of the object, one for each type.',
  'conditions[].type': 'Name of the condition, such as Ready.',
  'conditions[].status': 'Whether the condition holds: True, False or Unknown.',
  'conditions[].observedGeneration': 'The metadata.generation that the condition is about.',
  'conditions[].lastTransitionTime': 'Time of the last change of status.',
  'conditions[].reason': 'Cause of the status in one word, for programs.',
  'conditions[].message': 'Cause of the status in a sentence, for people.',

  tolerations: 'Taints of nodes that the Pods tolerate, as in a Pod.',
  'tolerations[].key': 'Key of the taint. Absent: every key, with operator Exists.',
  'tolerations[].operator': 'Relation of key and value. Absent: Equal.',
  'tolerations[].value': 'Value of the taint, with operator Equal.',
  'tolerations[].effect': 'Effect of the taint. Absent: every effect.',
  'tolerations[].tolerationSeconds': 'Seconds that a NoExecute taint is tolerated. Absent: for ever.',

  'spec.resources': 'Resources of the Pod. Refused for agent Tasks: resources belong to the class.',
  'spec.resources.requests': 'Amounts that the scheduler reserves, by resource.',
  'spec.resources.limits': 'Amounts that the container may use at most, by resource.',
  'spec.resources.claims': 'Claims of dynamic resources, as in a Pod.',

  'execution.runtimeClassName': `Runtime class of the Pod. ${placement}`,
  'execution.nodeSelector': `Labels of the nodes that the Pod may run on. ${placement}`,
  'execution.tolerations': `Taints of nodes that the Pod tolerates. ${placement}`,
  'execution.affinity': `Affinity of the Pod, as in a Pod. ${placement}`,

  'workspace.classRef': 'Workspace class that the request takes its settings from. Not available.',
  'workspace.classRef.name': 'Name of the workspace class.',
  'workspace.templateRef':
    'Template of the provider to start from. Refused: sessions run only in templates that the controller renders.',
  'workspace.templateRef.name': 'Name of the template.',
  'workspace.templateRef.namespace': 'Namespace of the template. Absent: that of the object.',
  'workspace.onDetach': 'What becomes of the workspace between two Tasks. Refused: a workspace ends with its Task.',
  'workspace.boot': 'Whether the workspace is only started. true is refused.',
  'workspace.poolRef': 'Pool of workspaces to take one from. Refused: a workspace has a pool of its own.',
  'workspace.poolRef.name': 'Name of the pool.',
  'workspace.poolRef.namespace': 'Namespace of the pool. Absent: that of the object.',
  'workspace.snapshot': 'Snapshot to restore, or to make. Refused: workspaces are not restored.',
  'workspace.snapshot.restoreURI': 'URI of the snapshot to restore.',
  'workspace.snapshot.checkpointURI': 'URI at which a snapshot is stored.',
  'workspace.snapshot.checkpointOnRelease': 'Whether a snapshot is made when the workspace is released.',
  'workspace.hibernation': 'How the workspace hibernates. Refused: workspaces do not hibernate.',
  'workspace.hibernation.processMode': 'Whether processes start again or stay resident.',
  'workspace.hibernation.residentKey': 'Name under which resident processes are found again.',
};

/** Names of the publisher in a cluster. The controller makes its Secret and calls its Service; the installation renders the Service. */
export const publisherServiceName = 'orka-publisher';
export const publisherSecretName = 'orka-publisher-auth';

/** `operations`: TLS, only for the controller. `artifacts`: downloads of sandboxes. */
export const publisherPorts = { operations: 8443, artifacts: 8080, probes: 8081 } as const;

module orka-workspaces/test/cluster/modules/pause

go 1.26.0

module k8s-node-tools/dashboard

go 1.24

require github.com/grafana/grafana-foundation-sdk/go v0.0.0-20250310114924-e8eb8530bc7c

// Tests of delegates against an agent that is served by the official A2A SDK. They are a module of their own so that the
// SDK's dependencies, gRPC among them, are not those of the engine.
module github.com/workflows-engine/workflows-engine/internal/a2atest

go 1.26.0

require (
	github.com/a2aproject/a2a-go v0.3.3
	github.com/workflows-engine/workflows-engine v0.0.0
)

require (
	github.com/dlclark/regexp2/v2 v2.12.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/itchyny/gojq v0.12.20 // indirect
	github.com/itchyny/timefmt-go v0.1.9 // indirect
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/workflows-engine/workflows-engine => ../..

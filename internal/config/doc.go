// Package config turns flags, environment variables and defaults into one validated Config, which both commands use.
//
//	flags := config.Register(cmd.Flags())          // --store, --store-path, …
//	cfg, err := flags.Load(config.System())        // flag, then variable, then default
//	store, err := cfg.OpenStore(ctx)
//	executors, err := cfg.Executors()
//	runner, err := graph.New(store, cfg.RunnerOptions(executors, logger))
//
// The settings are strict: the error for an unknown value lists the known ones, and a file that a variable names must
// be readable and well-formed when the process starts, not when the first node needs it.
package config

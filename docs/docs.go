// Package docs holds the pages for authors of definitions, so that programs can print them.
package docs

import _ "embed"

// Definitions is the reference of the definition language.
//
//go:embed definitions.md
var Definitions string

// Cookbook has complete definitions for common tasks.
//
//go:embed cookbook.md
var Cookbook string

// Agents is the page about agents that run inside the engine.
//
//go:embed agents.md
var Agents string

// Codes describes each code and the action to take.
//
//go:embed reference/codes.md
var Codes string

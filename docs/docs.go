// Package docs holds the pages for authors of definitions, so that programs can print them.
package docs

import _ "embed"

// Workflows is the page on writing definitions.
//
//go:embed workflows.md
var Workflows string

// Language is the reference of the definition language.
//
//go:embed reference/language.md
var Language string

// Recipes has complete definitions for common tasks.
//
//go:embed recipes.md
var Recipes string

// Agents is the page about agents that run inside the engine.
//
//go:embed agents.md
var Agents string

// Codes describes each code and the action to take.
//
//go:embed reference/codes.md
var Codes string

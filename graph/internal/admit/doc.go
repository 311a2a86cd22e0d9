// Package admit checks calls before anything is written: whether a call is allowed, which run it is for, and whether it repeats an
// earlier call. It is pure; callers pass in the history. It holds the codes and texts of rejections, so that every host of the machine
// rejects a call in the same way.
package admit

// Package view computes the status of a run, the result of every call, from a machine, a projection and a program. It is pure, so that other
// hosts of the machine can use it.
package view

//go:build !sluice_weak

package sluice

// #cgo pkg-config: sluice
import "C"

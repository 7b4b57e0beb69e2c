# The libraries, from the sources that this lies in: `nix-build lib/packages/nix`, or `pkgs.callPackage` of package.nix.
{ pkgs ? import <nixpkgs> { } }: pkgs.callPackage ./package.nix { }

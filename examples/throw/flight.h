// The flight of a thrown body: how far from its target it ends, with the gradient by the velocity of the throw.
#pragma once
#include "../common/body.h"

/// The target and the duration of a flight.
struct Throw {
  weft::vec3 target;     ///< the place where the body's centre is to end
  float seconds = 1.6f;  ///< the duration of the flight, with the landing
  int steps = 1200;      ///< even
  int slots = 12;        ///< states that are kept for the way back
};

class Flight {
 public:
  /// Takes a body that stands, when it is thrown, as the mesh does.
  Flight(const weft::Device& device, const BodyMesh& mesh, const Throw& plan);

  /// The square of the distance between the target and the body's centre at the end of the flight, in square metres,
  /// and its gradient by the velocity.
  struct Result {
    float loss = 0;
    weft::vec3 gradient;
  };
  /// Throws the body and goes back through the flight. Waits for the result.
  /// Cost: each step is computed two or three times forward and once backward; memory for `slots` states of the body.
  Result miss(const weft::vec3& velocity);

  /// Throws the body and returns its shape at `count` moments, including the first and the last.
  std::vector<Shape> shapes(const weft::vec3& velocity, int count);

  const Body& body() const { return body_; }

 private:
  float dt() const { return plan_.seconds / float(plan_.steps); }

  Body body_;
  Throw plan_;
  weft::Array<weft::vec3> start_, velocity_, centre_;
  weft::Array<float> loss_;
};
